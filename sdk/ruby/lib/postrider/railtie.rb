# frozen_string_literal: true

module Postrider
  # Makes `:postrider` a delivery method of ActionMailer in applications of Rails.
  class Railtie < Rails::Railtie
    initializer "postrider.action_mailer", before: "action_mailer.set_configs" do
      require_relative "action_mailer"
    end
  end
end
